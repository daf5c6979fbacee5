#!/usr/bin/env node
// Runs the program of mcp-bridge that npm installed for this platform. Nothing here may touch
// process.stdin or process.stdout: Node would make the client's pipes non-blocking, for the program
// too.
'use strict';
const { spawn } = require('node:child_process');
const { accessSync, constants } = require('node:fs');
const { isatty } = require('node:tty');

const name = `mcp-bridge-${process.platform}-${process.arch}`;
const file = process.platform === 'win32' ? 'mcp-bridge.exe' : 'mcp-bridge';
let program;
try {
  program = require.resolve(`${name}/bin/${file}`);
} catch {
  console.error(`mcp-bridge: the package ${name} is missing. Install mcp-bridge again, with optional ` +
    'dependencies; if there is no such package, this platform is not supported.');
  process.exit(1);
}

// Node.js 22.15 and later becomes the program. An older one, and any on Windows, stays as its parent.
if (process.execve && process.platform !== 'win32') {
  let executable = true;
  try {
    accessSync(program, constants.X_OK);
  } catch {
    executable = false; // execve would abort; spawn says why
  }
  if (executable) process.execve(program, [program, ...process.argv.slice(2)]);
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  // The terminal sends its Ctrl-C to the program as well, for which a second one would mean haste.
  const twice = signal === 'SIGINT' && [0, 1, 2].some(isatty);
  process.on(signal, () => { if (!twice) child.kill(signal); });
}
child.on('error', (err) => {
  console.error(`mcp-bridge: starting ${program}: ${err.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
