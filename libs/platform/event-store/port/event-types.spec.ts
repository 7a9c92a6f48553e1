import { describe, expect, it } from '@jest/globals';
import { EventTypes } from './event-types.js';

const order = {
  name: 'order',
  events: { OrderPlaced: { name: 'order.placed', publishedAs: null } },
};

describe('EventTypes', () => {
  it('knows the types that the aggregates name, in the versions of today, and no other', () => {
    const types = new EventTypes([order]);
    expect(types.findPublicName('OrderPlaced')).toBe('order.placed');
    expect(types.findPublicName('OrderPainted')).toBeUndefined();
    expect(types.findPublicName('constructor')).toBeUndefined();
    const unknownEvent = { id: '7', type: 'OrderPainted', version: 1 };
    expect(() => types.assertKnown([unknownEvent], 'nothing is sent')).toThrow(
      'does not know the type OrderPainted of event 7; nothing is sent until',
    );
    const newer = { id: '7', type: 'OrderPlaced', version: 2 };
    expect(() => types.assertKnown([newer], 'nothing is sent')).toThrow(
      'does not know version 2 of the type OrderPlaced of event 7',
    );
  });

  it('refuses a type that two aggregates name', () => {
    const otherAggregate = { ...order, name: 'voucher' };
    expect(() => new EventTypes([order, otherAggregate])).toThrow('voucher');
  });
});
