// Package cost has nothing but tests: they count, with a real tokenizer, what the bridge costs a model's context, beside what it
// replaces. They see the bridge as a client does.
package cost
