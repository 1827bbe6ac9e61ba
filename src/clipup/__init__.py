"""Train controllers without backpropagation: PGPE with the ClipUp optimizer."""
