//go:build !linux

package main

func hide() {} // other systems let no process read another's memory without a right to

func openFiles() int64 { return noFile } // the engine is in a virtual machine
