package audit

// noFollow is nothing: open looks for links before.
const noFollow = 0
