"""What is promised: guarantees, calibrations, noise, certificates, mechanisms, ledger. Trusted: see README.md here."""
