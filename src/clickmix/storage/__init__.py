"""Storage: atomic files, folders, checksummed JSON documents, records, locks. All writes go through here."""
