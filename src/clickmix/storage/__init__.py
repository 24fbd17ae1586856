"""Storage: atomic files, checksummed JSON documents, locks. Everything that is written goes through here."""
