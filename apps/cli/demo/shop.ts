import type { Role } from '#identity/roles.js';

/** The shop of the demo: what its owner has set up. */

export const STORE = {
  name: 'Café Morgenrot',
  storeName: 'Café Morgenrot – Rösterei am Hafen',
  timeZone: 'Europe/Berlin',
  locale: 'de-DE',
};

export type StaffKey = 'mira' | 'jonas' | 'aylin' | 'lukasz' | 'noor' | 'till';

export const STAFF: { key: StaffKey; name: string; email: string; role: Role }[] = [
  { key: 'mira', name: 'Mira Sommer', email: 'mira@morgenrot.example', role: 'owner' },
  { key: 'jonas', name: 'Jonas Lindqvist', email: 'jonas@morgenrot.example', role: 'manager' },
  { key: 'aylin', name: 'Aylin Öztürk', email: 'aylin@morgenrot.example', role: 'staff' },
  { key: 'lukasz', name: 'Łukasz Wiśniewski', email: 'lukasz@morgenrot.example', role: 'staff' },
  { key: 'noor', name: 'نور الهاشمي', email: 'noor@morgenrot.example', role: 'staff' },
];

export type LocationKey = 'harbour' | 'eppendorf' | 'park';

/** @property isOpen by month (1 to 12) and weekday (0: Sunday) */
export type DemoLocation = {
  key: LocationKey;
  name: string;
  address: string;
  pin: { latitude: number; longitude: number };
  share: number;
  staff: StaffKey[];
  isOpen: (month: number, weekday: number) => boolean;
};

export const LOCATIONS: DemoLocation[] = [
  {
    key: 'harbour',
    name: 'Rösterei am Hafen',
    address: 'Vorsetzen 32, 20459 Hamburg',
    pin: { latitude: 53.5446, longitude: 9.9762 },
    share: 6,
    staff: ['aylin', 'aylin', 'aylin', 'lukasz', 'lukasz', 'mira'],
    isOpen: () => true,
  },
  {
    key: 'eppendorf',
    name: 'Eppendorf',
    address: 'Eppendorfer Landstraße 12, 20249 Hamburg',
    pin: { latitude: 53.5891, longitude: 9.9879 },
    share: 4,
    staff: ['noor', 'noor', 'noor', 'till', 'jonas'],
    isOpen: (_month, weekday) => weekday !== 0,
  },
  {
    key: 'park',
    name: 'Kiosk im Stadtpark (Mai bis September)',
    address: 'Hindenburgstraße 1, 22303 Hamburg',
    pin: { latitude: 53.5967, longitude: 10.0203 },
    share: 2,
    staff: ['lukasz', 'till', 'till'],
    isOpen: (month) => month >= 5 && month <= 9,
  },
];

export type CardKey = 'coffee' | 'lunch' | 'beans' | 'summer';

/** Cards as the API takes them, with their rewards. */
export const CARDS: Record<
  CardKey,
  {
    card: Record<string, unknown> & { stamps_required: number; initial_stamps: number };
    rewards: { name: string; stamps_required: number }[];
  }
> = {
  coffee: {
    card: {
      name: 'Kaffeekarte',
      stamps_required: 10,
      initial_stamps: 1,
      stamp_icon: 'coffee',
      card_color: '#4A2C1D',
      stamp_color: '#4A2C1D',
      strip_type: 'preset',
      strip_preset: 'coffee',
      header_text: 'Morgenrot',
    },
    rewards: [
      { name: 'Espresso oder Filterkaffee', stamps_required: 5 },
      { name: 'Kaffee nach Wahl, auch mit Hafermilch', stamps_required: 10 },
    ],
  },
  lunch: {
    card: {
      name: 'Mittagstisch am Hafen',
      stamps_required: 8,
      initial_stamps: 0,
      stamp_icon: 'salad',
      card_color: '#1F4D3A',
      stamp_color: '#1F4D3A',
      strip_type: 'preset',
      strip_preset: 'restaurant',
      max_stamps_per_day: 4,
    },
    rewards: [{ name: 'Mittagessen nach Wahl', stamps_required: 8 }],
  },
  beans: {
    card: {
      name: 'Bohnen für zu Hause – ganze Bohne oder frisch gemahlen',
      stamps_required: 6,
      initial_stamps: 0,
      stamp_icon: 'shopping_bag',
      card_color: '#7A3B2E',
      stamp_color: '#7A3B2E',
    },
    rewards: [{ name: '250 g Bohnen der Woche', stamps_required: 6 }],
  },
  summer: {
    card: {
      name: 'Eiskarte 🍦',
      stamps_required: 5,
      initial_stamps: 0,
      stamp_icon: 'ice_cream',
      card_color: '#0F5C7A',
      stamp_color: '#0F5C7A',
    },
    rewards: [{ name: 'Eine Kugel Eis', stamps_required: 5 }],
  },
};

export const POSTERS: { card: CardKey; title: string; paper_size: string; active: boolean }[] = [
  { card: 'coffee', title: 'Der zehnte Kaffee geht auf uns', paper_size: 'a4', active: true },
  { card: 'coffee', title: 'Tischaufsteller', paper_size: 'a6', active: true },
  { card: 'lunch', title: 'Mittagstisch', paper_size: 'a5', active: true },
  { card: 'summer', title: 'Eis im Park', paper_size: 'a4', active: false },
];

/** Messages as the API takes them. */
export const RULE = {
  kind: 'stamps_away',
  threshold: 1,
  title: 'Nur noch ein Stempel',
  text: 'Beim nächsten Besuch ist die Prämie voll. Bis bald am Hafen!',
  enabled: true,
};
export const ANNOUNCEMENT = {
  title: 'Adventsfrühstück',
  text: 'An allen vier Adventssonntagen gibt es ab 9 Uhr Frühstück mit frischen Waffeln.',
};
