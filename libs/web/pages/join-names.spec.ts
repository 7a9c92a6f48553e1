import { expect, it } from '@jest/globals';
import { joinNames } from './join-names.js';

it('joins the names of a title, each once', () => {
  expect(joinNames('Coffee card', 'Corner Café')).toBe('Coffee card · Corner Café');
  expect(joinNames('Coffee card', 'Coffee card')).toBe('Coffee card');
});
