import { describe, expect, it } from '@jest/globals';
import { findDamage } from './cell-damage.js';

const CHANGED = 'looks like a spreadsheet has changed it';

describe('findDamage', () => {
  it.each([
    '595600.0',
    '595600.00',
    '595600,0',
    '595600٫0',
    '-7.0',
    '0.0',
    '1.51E+11',
    '1,51E+11',
    '1.51e+11',
    '1e+16',
    '4.915112345678E12',
    '１.５１Ｅ＋１１',
  ])('finds an external id that is a number in another form: %j', (text) => {
    expect(findDamage('external_id', text)?.message).toBe(CHANGED);
  });

  it.each(['000069816', '12E5', 'A-17', 'v1.0', '1.2.0', '10', '3.14', '#17', 'null-17', '1E-05'])(
    'leaves the external id %j',
    (text) => expect(findDamage('external_id', text)?.message).toBeUndefined(),
  );

  it.each(
    String.raw`#N/A #REF! #VALUE! #NAME? #NULL! #DIV/0! #NUM! #SPILL! #NV #WERT! #BEZUG! #ÜBERLAUF! #NOM? #¡REF! #¿NOMBRE? #N/D Err:502 ## ######### nan NaN NaT None NULL null <NA> N/A \N`.split(
      ' ',
    ),
  )('finds %j in every field', (text) => {
    expect(findDamage('first_name', text)?.message).toBe(CHANGED);
    expect(findDamage('external_id', text)?.message).toBe(CHANGED);
    expect(findDamage('stamps', text)?.message).toBe(CHANGED);
  });

  it.each(['Nan', 'Null', 'Nanette', 'Noneworth', '#1', '#MeToo', 'Anna!', '', 'x#N/A'])(
    'leaves the name %j',
    (text) => expect(findDamage('last_name', text)?.message).toBeUndefined(),
  );

  it('finds quotation marks around the whole cell', () => {
    expect(findDamage('last_name', '"Miller"')?.message).toBe('is still in quotation marks');
    expect(findDamage('external_id', '"17"')?.message).toBe('is still in quotation marks');
    expect(findDamage('last_name', '""')?.message).toBe('is still in quotation marks');
    for (const text of ['5" pipe', 'Ann "Annie" Smith', '"Ann" Smith', 'Ann "Annie"', '"']) {
      expect(findDamage('first_name', text)?.message).toBeUndefined();
    }
  });

  it('finds a character that an earlier conversion has lost', () => {
    expect(findDamage('last_name', 'M\uFFFDller')?.message).toBe(
      'has a character that was lost when the file was written',
    );
  });
});
