"""What runs came to: tables and pictures."""
