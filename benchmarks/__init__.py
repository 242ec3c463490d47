"""Side-by-side timing of recaffe against its peers: ratios, measured in one run."""
