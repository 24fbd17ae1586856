"""Groups: which cells share one chance of being examined.   counts -> groups -> mixtures"""
