/**
 * Renders SQL that selects customers by their cards, those of the account $1 that were not merged into others. It reads all cards of the account or of the template once: an index on what each stamp changes would make stamping
 * slower.
 */

const FROM_CARDS = `from customer_cards k where k.account_id = $1 and k.merged_into is null`;
const CARDS = `select k.customer_id ${FROM_CARDS}`;
const STAMPS = `(k.state ->> 'stampsCount')::bigint`;

/**
 * Selects the customers who have a card of a template, or a number of stamps: on that card, or else on all together.
 * @param value adds a parameter to the statement, and returns its placeholder
 */
export function selectHoldersOfStamps(
  { cardId, minStamps }: { cardId: number | null; minStamps: number | null },
  value: (parameter: unknown) => string,
): string {
  if (cardId === null) {
    return `${CARDS} group by k.customer_id having sum(${STAMPS}) >= ${value(minStamps)}`;
  }
  const ofCard = `${CARDS} and k.card_id = ${value(cardId)}`;
  return minStamps === null ? ofCard : `${ofCard} and ${STAMPS} >= ${value(minStamps)}`;
}

/** Selects the customers who have as many stamps on any card as is given for its template. */
export function selectHoldersOfAny(
  minStampsByCard: ReadonlyMap<number, number>,
  value: (parameter: unknown) => string,
): string {
  const [ids, stamps] = [value([...minStampsByCard.keys()]), value([...minStampsByCard.values()])];
  return `${CARDS} and ${STAMPS} >= (${stamps}::bigint[])[array_position(${ids}::bigint[], k.card_id)]`;
}

/** Renders SQL that selects, for each customer with a card, the last change of any of their cards, or all their stamps. */
export function selectCardKeys(sort: 'active' | 'stamps'): string {
  const key = sort === 'stamps' ? 'sum(k.balance)' : `max((k.state ->> 'updatedAt') collate "C")`;
  return `select k.customer_id, ${key} as key ${FROM_CARDS} group by k.customer_id`;
}

/**
 * Renders the condition that a customer has a card that has changed at or after a time.
 * @param customerId SQL of their id
 * @param time a placeholder for its ISO 8601 text
 */
export function hasCardChangedSince(customerId: string, time: string): string {
  return `exists (${CARDS} and k.customer_id = ${customerId} and (k.state ->> 'updatedAt') collate "C" >= ${time})`;
}
