"""The machine: backend, blobs, layers' base class, nets, solvers, snapshots, the command line."""
