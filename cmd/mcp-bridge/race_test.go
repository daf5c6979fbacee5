//go:build race

package main

// hostilePeak is the most memory that the bridge may have held once it has run all hostile
// programs, in bytes. Beside what it holds, and may hold without the race detector, there is what
// that knows of it: 811 MiB were measured on an idle machine before boundGarbage, and 577 on a busy
// one since.
const hostilePeak = 1 << 30

// raceDetector: it makes minutes of a gigabyte, and keeps memory of its own.
const raceDetector = true
