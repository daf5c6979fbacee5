//go:build !race

package main

// hostilePeak is the most memory that the bridge may have held once it has run all hostile
// programs, in bytes: what boundGarbage lets it have, and the program itself.
const hostilePeak = softMemory + 128<<20

const raceDetector = false
