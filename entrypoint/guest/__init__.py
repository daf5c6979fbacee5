"""What runs inside the container: a supervisor that holds the frames, and the child that runs the code."""
