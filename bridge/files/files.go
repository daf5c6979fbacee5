// Package files moves files between runs and directories of the user's: what runs hand over is
// written into one (Store), and what a call names is read below others (Inputs).
//
// Names come from code and from models. Nothing is written or read outside the directories, through
// whatever links; nothing that was there before is replaced. It knows nothing of MCP.
package files
