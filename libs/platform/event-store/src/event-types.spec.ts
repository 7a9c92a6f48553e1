import { describe, expect, it } from '@jest/globals';
import { EventTypes } from './event-types.js';

const card = { name: 'card', names: { CardCreated: 'card.created' } };

describe('the types of stored events', () => {
  it('are those that the aggregates name, and no other', () => {
    const types = new EventTypes([card]);
    expect(types.nameOf('CardCreated')).toBe('card.created');
    expect(types.nameOf('CardPainted')).toBeUndefined();
    expect(types.nameOf('constructor')).toBeUndefined();
    const painted = { id: '7', type: 'CardPainted', version: 1 };
    expect(() => types.refuseUnknown([painted], 'nothing is sent')).toThrow(
      'does not know the type CardPainted of event 7; nothing is sent until',
    );
  });

  it('belong to one aggregate each', () => {
    const other = { ...card, name: 'voucher' };
    expect(() => new EventTypes([card, other])).toThrow('voucher');
  });
});
