"""What can be known of a sampler without sampling: its law, likelihoods, losses, the contract."""
