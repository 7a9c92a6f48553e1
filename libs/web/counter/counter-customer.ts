/** Limits the results of a search to what a phone shows at once. */
export const MAX_CUSTOMERS = 10;

/** The fields of a new customer, as the API takes them. */
export type NewCustomer = { first_name: string; email?: string; phone?: string };

/**
 * Reads one field that is a phone number or an e-mail address.
 * @param guest the name of somebody who has only given a number
 * @returns undefined when it is neither, such as a name: a customer has one of the two
 */
export function readNewCustomer(text: string, guest: string): NewCustomer | undefined {
  const input = text.trim();
  if (input.includes('@')) return { first_name: guessName(input, guest), email: input };
  const isPhone = /^[+(\p{Nd}][\p{Nd}\s()./+-]{4,}$/u.test(input);
  return isPhone ? { first_name: guest, phone: input } : undefined;
}

/** Guesses a first name from an address: staff or the guest put it right where it is wrong. */
function guessName(address: string, guest: string): string {
  const [word = ''] = /^\p{L}{2,}/u.exec(address) ?? [];
  return word === '' ? guest : word.charAt(0).toUpperCase() + word.slice(1).toLowerCase();
}
