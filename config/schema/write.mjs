// Writes trunkline.schema.json from the schema in the dispatcher: `npm run build && node config/schema/write.mjs`.
import { writeFileSync } from 'node:fs';
import { configurationSchema } from '@trunkline/dispatcher';

const file = new URL('trunkline.schema.json', import.meta.url);
writeFileSync(file, `${JSON.stringify(configurationSchema, null, 2)}\n`);
