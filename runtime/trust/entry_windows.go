package trust

// System returns owners that trust every file.
func System() Owners { return Owners{} }
