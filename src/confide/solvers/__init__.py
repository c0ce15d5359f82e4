"""How the minimum is found. Not trusted: the certificate checks every answer."""
