"""What several samplers are made of; no sampler is registered here."""
