"""Our images: what they are made of, and what they are called. `building` builds them."""
