import { describe, expect, it } from '@jest/globals';
import { ISSUES } from '#translations/issues.js';
import {
  listFieldsOfCards,
  resolveColumns,
  suggestColumns,
  type MappingRequest,
} from './import-columns.js';

const fieldsOf = (headers: string[], mapping: MappingRequest = {}) =>
  resolveColumns(headers, mapping).columns?.map(({ field }) => field);

describe('suggestColumns', () => {
  const suggest = (headers: string[], hasCard = true) =>
    suggestColumns(headers, hasCard).columns?.map(({ field }) => field);

  it('suggests as many columns as the headers tell, though nobody could be found by them', () => {
    expect(suggest(['Vorname', 'Spalte 2'])).toEqual(['first_name', null]);
    expect(suggest(['A', 'B'])).toEqual([null, null]);
  });

  it('gives a field to the first of two columns for it', () => {
    expect(suggest(['Email', 'Mail', 'Vorname'])).toEqual(['email', null, 'first_name']);
  });

  it('ignores columns of cards where there is none', () => {
    expect(suggest(['Email', 'Stempel'], false)).toEqual(['email', null]);
    expect(suggest(['Email', 'Stempel'])).toEqual(['email', 'stamps']);
  });

  it('refuses two columns with the same header, which nothing can tell apart', () => {
    expect(suggestColumns(['Email', 'Email'], true).errors).toHaveLength(1);
  });
});

/** The header rows of exports, and what of them is fields; the first sample of a column where its content decides. */
const EXPORTS: [
  product: string,
  header: string,
  fields: Record<string, string>,
  samples?: object,
][] = [
  [
    'Shopify',
    'Customer ID,First Name,Last Name,Email,Accepts Email Marketing,Default Address Company,Default Address Address1,Default Address Address2,Default Address City,Default Address Province Code,Default Address Country Code,Default Address Zip,Default Address Phone,Phone,Accepts SMS Marketing,Total Spent,Total Orders,Note,Tax Exempt,Tags',
    {
      external_id: 'Customer ID',
      first_name: 'First Name',
      last_name: 'Last Name',
      email: 'Email',
      phone: 'Phone',
      marketing_consent: 'Accepts Email Marketing',
      sms_consent: 'Accepts SMS Marketing',
    },
  ],
  [
    'Brevo',
    'CONTACT ID,EMAIL,FIRSTNAME,LASTNAME,SMS,LANDLINE_NUMBER,WHATSAPP,EXT_ID,ADDED_TIME,MODIFIED_TIME',
    {
      external_id: 'EXT_ID',
      email: 'EMAIL',
      first_name: 'FIRSTNAME',
      last_name: 'LASTNAME',
      phone: 'SMS',
    },
    { SMS: '33612345678' },
  ],
  [
    'Brevo in French',
    'EMAIL,NOM,PRENOM,SMS',
    { email: 'EMAIL', last_name: 'NOM', first_name: 'PRENOM', phone: 'SMS' },
    { SMS: '+33 6 12 34 56 78' },
  ],
  [
    'Klaviyo',
    'Email,Klaviyo ID,First Name,Last Name,Organization,Title,Phone Number,Address,Address 2,City,State / Region,Country,Zip Code,Email Marketing Consent,SMS Marketing Consent',
    {
      email: 'Email',
      first_name: 'First Name',
      last_name: 'Last Name',
      phone: 'Phone Number',
      marketing_consent: 'Email Marketing Consent',
      sms_consent: 'SMS Marketing Consent',
    },
  ],
  [
    'WooCommerce users',
    'ID,customer_id,user_login,user_nicename,user_email,user_registered,display_name,first_name,last_name,billing_first_name,billing_last_name,billing_company,billing_email,billing_phone,shipping_first_name,shipping_last_name',
    {
      external_id: 'customer_id',
      email: 'user_email',
      first_name: 'first_name',
      last_name: 'last_name',
      phone: 'billing_phone',
    },
  ],
  [
    'WooCommerce orders',
    'order_id,billing_first_name,billing_last_name,billing_email,billing_phone,shipping_first_name',
    {
      first_name: 'billing_first_name',
      last_name: 'billing_last_name',
      email: 'billing_email',
      phone: 'billing_phone',
    },
  ],
  [
    'WooCommerce Analytics',
    'Name,Username,Last Active,Sign Up,Email,Orders,Total Spend,AOV,Country / Region,City,Region,Postal Code',
    { first_name: 'Name', email: 'Email' },
  ],
  [
    'Lightspeed Retail',
    'customer_code,first_name,last_name,company_name,email,phone,mobile,fax,do_not_email,date_of_birth,gender,customer_group_name,loyalty_balance',
    {
      external_id: 'customer_code',
      first_name: 'first_name',
      last_name: 'last_name',
      email: 'email',
      phone: 'mobile',
      birthday: 'date_of_birth',
    },
  ],
  [
    'Lightspeed eCom',
    'Internal ID;Registered;Language;Firstname;LastnamePreposition;Lastname;E-Mail;Phone;Mobile;Customer type;Company',
    {
      external_id: 'Internal ID',
      first_name: 'Firstname',
      last_name: 'Lastname',
      email: 'E-Mail',
      phone: 'Mobile',
    },
  ],
  [
    'Google Contacts',
    'First Name,Middle Name,Last Name,Phonetic First Name,Phonetic Last Name,Name Prefix,Name Suffix,Nickname,File As,Organization Name,Birthday,Notes,Photo,Labels,E-mail 1 - Label,E-mail 1 - Value,E-mail 2 - Label,E-mail 2 - Value,Phone 1 - Label,Phone 1 - Value,Phone 2 - Label,Phone 2 - Value',
    {
      first_name: 'First Name',
      last_name: 'Last Name',
      birthday: 'Birthday',
      email: 'E-mail 1 - Value',
      phone: 'Phone 1 - Value',
    },
  ],
  [
    'Google Contacts, older',
    'Name,Given Name,Additional Name,Family Name,Yomi Name,Birthday,Gender,E-mail 1 - Type,E-mail 1 - Value,Phone 1 - Type,Phone 1 - Value',
    {
      first_name: 'Given Name',
      last_name: 'Family Name',
      birthday: 'Birthday',
      email: 'E-mail 1 - Value',
      phone: 'Phone 1 - Value',
    },
  ],
  [
    'Outlook',
    'First Name,Middle Name,Last Name,Home Phone,Mobile Phone,Business Phone,E-mail Address,E-mail 2 Address,Birthday',
    {
      first_name: 'First Name',
      last_name: 'Last Name',
      phone: 'Mobile Phone',
      email: 'E-mail Address',
      birthday: 'Birthday',
    },
  ],
  [
    'Square',
    'Reference ID,First Name,Last Name,Email Address,Phone Number,Nickname,Company Name,Birthday,Memo,Square Customer ID,Creation Source,First Visit,Email Subscription Status',
    {
      external_id: 'Reference ID',
      first_name: 'First Name',
      last_name: 'Last Name',
      email: 'Email Address',
      phone: 'Phone Number',
      birthday: 'Birthday',
      marketing_consent: 'Email Subscription Status',
    },
  ],
  [
    'a French spreadsheet',
    'Prénom;Nom;Adresse e-mail;Téléphone fixe;Téléphone mobile;Date de naissance;N° client',
    {
      first_name: 'Prénom',
      last_name: 'Nom',
      email: 'Adresse e-mail',
      phone: 'Téléphone mobile',
      birthday: 'Date de naissance',
      external_id: 'N° client',
    },
  ],
  [
    'a German spreadsheet',
    'Kunden-Nr.;Vorname;Name;E-Mail;Festnetz;Handy-Nr.;geb. am;Newsletter',
    {
      external_id: 'Kunden-Nr.',
      first_name: 'Vorname',
      last_name: 'Name',
      email: 'E-Mail',
      phone: 'Handy-Nr.',
      birthday: 'geb. am',
      marketing_consent: 'Newsletter',
    },
  ],
  [
    'a Dutch spreadsheet',
    'Klantnr;Voornaam;Achternaam;E-mailadres;Telefoon;Mobiel nummer;Geboortedatum',
    {
      external_id: 'Klantnr',
      first_name: 'Voornaam',
      last_name: 'Achternaam',
      email: 'E-mailadres',
      phone: 'Mobiel nummer',
      birthday: 'Geboortedatum',
    },
  ],
  [
    'a Spanish spreadsheet',
    'Código cliente;Nombre;Apellidos;Correo electrónico;Teléfono;Teléfono móvil;Fecha nacimiento',
    {
      external_id: 'Código cliente',
      first_name: 'Nombre',
      last_name: 'Apellidos',
      email: 'Correo electrónico',
      phone: 'Teléfono móvil',
      birthday: 'Fecha nacimiento',
    },
  ],
];

describe.each(EXPORTS)('an export of %s', (_, header, fields, samples: object = {}) => {
  const headers = header.split(header.includes(';') ? ';' : ',');
  const cells = headers.map((name) => (samples as Record<string, string>)[name] ?? '');
  const expected = headers.map((name) => ({
    name,
    field: Object.keys(fields).find((field) => fields[field] === name) ?? null,
  }));

  it('is read without a mapping', () => {
    expect(resolveColumns(headers, {}, cells)).toEqual({ columns: expected });
  });

  it('is suggested alike', () => {
    expect(suggestColumns(headers, false, cells)).toEqual({ columns: expected });
  });
});

describe('resolveColumns', () => {
  it('takes a column SMS for consents, unless it holds phone numbers', () => {
    const read = (sample: string) =>
      resolveColumns(['Email', 'SMS'], {}, ['a@example.com', sample]);
    expect(
      ['yes', '', '1', '0612345678'].map((sample) => read(sample).columns?.[1]?.field),
    ).toEqual(['sms_consent', 'sms_consent', 'sms_consent', 'phone']);
  });

  it('ignores case, accents, spaces and punctuation of headers', () => {
    expect(fieldsOf(['E-MAIL', 'PRÉNOM', 'date_of_birth', 'Kunden-Nr.'])).toEqual([
      'email',
      'first_name',
      'birthday',
      'external_id',
    ]);
  });

  it('takes a name for the last one beside a first name, and for the whole name alone', () => {
    expect(fieldsOf(['Vorname', 'Name', 'Email'])).toEqual(['first_name', 'last_name', 'email']);
    expect(fieldsOf(['Name', 'Email'])).toEqual(['first_name', 'email']);
    expect(fieldsOf(['X', 'Nom', 'Email'], { X: 'first_name' })).toEqual([
      'first_name',
      'last_name',
      'email',
    ]);
  });

  it('lets the mapping decide, and ignores another column for the same field', () => {
    expect(fieldsOf(['Email', 'Mail 2'], { 'Mail 2': 'email' })).toEqual([null, 'email']);
    expect(fieldsOf(['Email', 'Phone'], { Phone: null })).toEqual(['email', null]);
  });

  it.each([
    [['email', 'E-Mail'], {}, 'has to say which column is email: email or E-Mail'],
    [['email', 'email'], {}, 'finds two columns that are called email'],
    [['email'], { Phone: 'phone' }, 'names the column Phone, which the file does not have'],
    [['a', 'b'], { a: 'email', b: 'email' }, 'has to say which column is email: a or b'],
  ] as const)('refuses %j with the mapping %j', (headers, mapping, error) => {
    expect(resolveColumns(headers, mapping).errors?.map(({ message }) => message)).toContain(error);
  });

  it('refuses a file that identifies nobody', () => {
    expect(resolveColumns(['first_name', 'constructor'], {}).errors).toEqual([
      ISSUES.column_missing({
        fields: 'email, phone, external_id',
        headers: 'first_name, constructor',
      }),
    ]);
  });
});

describe('listFieldsOfCards', () => {
  it('lists stamps and code', () => {
    const { columns = [] } = resolveColumns(['email', 'Stempel', 'Barcode'], {});
    expect(listFieldsOfCards(columns)).toEqual(['stamps', 'code']);
  });
});
