/**
 * How a store addresses its customers, in languages that make a difference: `informal` is "du", "tu" and "tú", `formal`
 * is "Sie", "vous" and "usted".
 */
export const ADDRESS_FORMS = ['informal', 'formal'] as const;
export type AddressForm = (typeof ADDRESS_FORMS)[number];
