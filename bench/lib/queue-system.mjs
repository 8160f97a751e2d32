/*
 * A system with durable queues is a file in queue-systems/ with one interface:
 *
 *   name, title, client        client: npm package of its Node client, or what is used in its place
 *   promise                    what a confirmation says, where that is not "flushed to the device"
 *   version()                  of the server, as text; throws Missing
 *   start()                    in the bench: → { url, pid, stop() }; everything it stores is in `scratch()`
 *   connect(url)               in a client process: →
 *     create(queue, groups)      an empty durable queue that each of the groups gets all messages of
 *     remove(queue, groups)
 *     publisher(queue)           → (body, stored): `stored()` is called when the message was confirmed
 *     consume(queue, group, onMessage)  onMessage(body) for each message, which is acknowledged behind it; resolves
 *                                when it is in force
 */
export const queueSystemNames = [
  'trunkline',
  'redis-stream',
  'rabbitmq-quorum',
  'rabbitmq-classic',
  'jetstream',
  'redis-raw',
  'jetstream-raw',
];

/** Most messages that one consumer has and has not acknowledged, where the system lets one say so. */
export const WINDOW = 4096;

export async function loadQueueSystem(name) {
  return (await import(`../queue-systems/${name}.mjs`)).default;
}
