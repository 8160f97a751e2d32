// The entry of every client process: runs what the bench asks of one role, and ends with the bench.
const role = await import(`../roles/${process.argv[2]}.mjs`);

process.on('disconnect', () => process.exit());
process.on('message', async ({ id, name, args }) => {
  try {
    process.send({ id, value: await role[name](args) });
  } catch (error) {
    process.send({ id, error: error?.stack ?? String(error) });
  }
});
