"""What several tests build their scenes from."""
