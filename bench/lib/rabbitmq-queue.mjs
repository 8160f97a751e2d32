import rabbitmq from '../systems/rabbitmq.mjs';
import { WINDOW } from './queue-system.mjs';

/** RabbitMQ with durable queues of one type, persistent messages and confirms. A group is a queue of a fanout exchange. */
export function rabbitQueue(type) {
  return {
    name: `rabbitmq-${type}`,
    title: `RabbitMQ, ${type} queue`,
    client: 'amqplib',
    version: rabbitmq.version,
    start: rabbitmq.start,

    async connect(url) {
      const { default: amqp } = await import('amqplib');
      const connection = await amqp.connect(url, { noDelay: true });
      const control = await connection.createChannel();
      return {
        async create(queue, groups) {
          await control.assertExchange(`queue.${queue}`, 'fanout', { durable: true });
          for (const group of groups.length === 0 ? ['all'] : groups) {
            const options = { durable: true, arguments: { 'x-queue-type': type } };
            await control.assertQueue(`queue.${queue}.${group}`, options);
            await control.bindQueue(`queue.${queue}.${group}`, `queue.${queue}`, '');
          }
        },
        async remove(queue, groups) {
          for (const group of groups.length === 0 ? ['all'] : groups)
            await control.deleteQueue(`queue.${queue}.${group}`);
          await control.deleteExchange(`queue.${queue}`);
        },
        async publisher(queue) {
          const channel = await connection.createConfirmChannel();
          const exchange = `queue.${queue}`;
          const options = { persistent: true };
          return (body, stored) => void channel.publish(exchange, '', body, options, stored);
        },
        async consume(queue, group, onMessage) {
          const channel = await connection.createChannel();
          await channel.prefetch(WINDOW);
          let last;
          // one acknowledgement for everything that came in one turn
          const ack = () => {
            channel.ack(last, true);
            last = undefined;
          };
          await channel.consume(`queue.${queue}.${group}`, (message) => {
            onMessage(message.content);
            if (last === undefined) setImmediate(ack);
            last = message;
          });
        },
      };
    },
  };
}
