"""Two-player games with chance and hidden information, and algorithms that play them."""
