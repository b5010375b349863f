"""What is true, and how one asks: worlds, their tasks, and what is measured in them."""
