// Preloaded into everything a bench starts: a bench killed with SIGKILL cannot stop its children.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
