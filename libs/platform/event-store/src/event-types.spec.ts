import { describe, expect, it } from '@jest/globals';
import { EventTypes } from './event-types.js';

const card = { name: 'card', names: { CardCreated: 'card.created' } };

describe('the types of stored events', () => {
  it('are those that the aggregates name, and no other', () => {
    const types = new EventTypes([card]);
    expect(types.nameOf('CardCreated')).toBe('card.created');
    expect(types.nameOf('CardPainted')).toBeUndefined();
    expect(types.nameOf('constructor')).toBeUndefined();
  });

  it('belong to one aggregate each', () => {
    const other = { name: 'voucher', names: { CardCreated: 'voucher.created' } };
    expect(() => new EventTypes([card, other])).toThrow('voucher');
  });
});
