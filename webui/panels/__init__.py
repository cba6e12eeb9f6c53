"""One file a panel of the page: its components, and the handlers that fill them."""
