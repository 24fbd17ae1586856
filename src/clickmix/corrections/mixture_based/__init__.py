"""The mixture-based correction (MBC): a mixture of click rates for every group, and labels from its posterior."""
