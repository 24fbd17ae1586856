"""Storage: atomic files, folders, checksummed JSON documents, records, locks. Whatever is written goes through here."""
