// Package discovery finds the MCP servers that the user has already configured for other programs. It only reads: it starts
// nothing, opens no socket and writes no file.
package discovery
