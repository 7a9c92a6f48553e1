import { foldCase } from '#loyalty/customers/search-keys.js';

/** Limits the results of a search to what a phone shows at once. */
export const MAX_CUSTOMERS = 10;
/** Limits the results that are sorted: the search also finds the text within words. */
export const MAX_SORTED = 50;

/** The fields of a new customer, as the API takes them. */
export type NewCustomer = {
  first_name: string;
  last_name?: string;
  email?: string;
  phone?: string;
};

/** Puts those first who have a name that begins with the text, so that Lotte comes before Charlotte. */
export function sortByMatch<C extends { first_name: string | null; last_name: string | null }>(
  customers: readonly C[],
  text: string,
): C[] {
  const start = foldCase(text);
  const isBeginning = ({ first_name, last_name }: C): boolean => {
    const name = foldCase([first_name, last_name].filter(Boolean).join(' '));
    return name.startsWith(start) || name.includes(` ${start}`);
  };
  const matches = customers.filter(isBeginning);
  return [...matches, ...customers.filter((customer) => !matches.includes(customer))];
}

/** Tells whether what somebody searched for is a phone number or an e-mail address, and no name. */
export function isContact(text: string): boolean {
  return text.includes('@') || /^[+(\p{Nd}][\p{Nd}\s()./+-]{4,}$/u.test(text.trim());
}

/**
 * Reads the form for a new customer.
 * @param name the first name, and what follows it; may be empty
 * @param contact a phone number or an e-mail address
 * @param guest the name of somebody whose name nobody knows
 */
export function readNewCustomer(name: string, contact: string, guest: string): NewCustomer {
  const input = contact.trim();
  const reach = input.includes('@') ? { email: input } : { phone: input };
  const [, first = '', last = ''] = /^(\S+)\s*(.*)$/su.exec(name.trim()) ?? [];
  if (first === '') {
    return { first_name: reach.email === undefined ? guest : guessName(input, guest), ...reach };
  }
  return { first_name: first, ...(last !== '' && { last_name: last }), ...reach };
}

/** Guesses a first name from an address: staff or the guest put it right where it is wrong. */
function guessName(address: string, guest: string): string {
  const [word = ''] = /^\p{L}{2,}/u.exec(address) ?? [];
  return word === '' ? guest : word.charAt(0).toUpperCase() + word.slice(1).toLowerCase();
}
