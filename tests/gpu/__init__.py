"""What only a CUDA device can show; nothing here needs more than torch and pytest."""
