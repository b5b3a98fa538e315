"""Records into state: what a coordinator of a chosen release holds after loading them."""
