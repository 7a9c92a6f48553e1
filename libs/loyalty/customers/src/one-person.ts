import type { Customer } from './customer.js';

/** Everybody whom merges join with a customer: first the one who goes on for all of them, then the others. */
export async function loadPerson(
  id: number,
  load: (id: number) => Promise<Customer>,
): Promise<Customer[]> {
  let root = await load(id);
  while (root.mergedInto) root = await load(root.mergedInto.customerId);
  const all = [root];
  // Grows while it is gone through.
  for (const { merges = [] } of all) {
    for (const { customerId } of merges) all.push(await load(customerId));
  }
  return all;
}
