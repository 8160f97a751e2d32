/*
 * A system is a file in systems/ with one interface:
 *
 *   name, title, client        client: npm package of its Node client
 *   version()                  of the server, as text; throws Missing
 *   start()                    in the bench: → { url, pid, stop() }
 *   connect(url)               in a client process: →
 *     open(channel)              sender of one channel: →
 *       ready()                    resolves when what is sent reaches those who receive
 *       flood(body, stopped())     sends as fast as the system's own back-pressure lets it
 *       send(body), flush()        for paced sending, flush after each tick; send is false when it was not taken
 *       drained()                  resolves when it would be taken
 *     receive(channel, onMessage)  onMessage(bytes, at): the body begins there; resolves when it is in force
 *     subscribe(first, count, wave)  idle subscriptions to so many channels, `wave` at a time; resolves when they are
 *                                  in force
 */
const files = ['trunkline', 'limit', 'nats', 'redis', 'mosquitto', 'rabbitmq'];

export const systemNames = files;

export async function loadSystem(name) {
  return (await import(`../systems/${name}.mjs`)).default;
}
