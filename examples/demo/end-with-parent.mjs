// Loaded into every child before its own code: should the demo be killed, its children end, too.
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));
// listening alone must not keep a child that is done
process.channel?.unref();
