"""The engine for a Ray cluster: jobs go to workers that come and go, and only the driver writes."""
