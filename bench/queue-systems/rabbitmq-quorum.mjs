import { rabbitQueue } from '../lib/rabbitmq-queue.mjs';

export default rabbitQueue('quorum');
