"""`maskwalk.evaluate`: is this policy better than what there is? The contract, then the suite."""
