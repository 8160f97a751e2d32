let publishers = 0;

/**
 * A number for each publisher of this process. It stands here, beside the instance id, because both together are the
 * name by which a queue knows a publisher: another copy of a package must not count from the beginning again.
 */
export function nextPublisher(): number {
  publishers++;
  return publishers;
}
