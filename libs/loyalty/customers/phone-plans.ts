import { parsePhoneNumberFromString } from 'libphonenumber-js/max';

/**
 * What countries have changed about their numbers, after the country code. Address books and messengers still have the
 * former spellings. Each rule has one outcome for each number that it matches.
 */
type PlanChange = {
  callingCode: string;
  rewrites: readonly (readonly [former: RegExp, current: string])[];
  /** Numbers that got digits which do not follow from the former ones, and how many digits there are now. */
  outdated?: readonly [former: RegExp, digits: number];
};

const PLAN_CHANGES: readonly PlanChange[] = [
  // Italy, 1998: the zero belongs to the numbers of the fixed network, and to no others.
  {
    callingCode: '39',
    rewrites: [
      [/^0(3\d{8,9})$/, '$1'],
      // Without those that begin with 3, like mobile numbers.
      [/^([124-9]\d{5,9})$/, '0$1'],
    ],
  },
  // Egypt, 2011: mobile numbers of ten digits.
  {
    callingCode: '20',
    rewrites: [
      [/^10(\d{7})$/, '100$1'],
      [/^16(\d{7})$/, '106$1'],
      [/^19(\d{7})$/, '109$1'],
      [/^151(\d{6})$/, '101$1'],
      [/^12(\d{7})$/, '122$1'],
      [/^17(\d{7})$/, '127$1'],
      [/^18(\d{7})$/, '128$1'],
      [/^150(\d{6})$/, '120$1'],
      [/^11(\d{7})$/, '111$1'],
      [/^14(\d{7})$/, '114$1'],
      [/^152(\d{6})$/, '112$1'],
    ],
  },
  // Mexico, 2019: ten digits, without 01 before calls to other towns, 044 and 045 before mobile numbers at home, and 1
  // before those from abroad.
  { callingCode: '52', rewrites: [[/^(?:1|01|044|045)(\d{10})$/, '$1']] },
  // Brazil, 2012 to 2016: a 9 before mobile numbers. WhatsApp leaves it out still.
  { callingCode: '55', rewrites: [[/^([1-9]{2})([6-9]\d{7})$/, '$19$2']] },
  // Chile, 2013: numbers of Santiago.
  { callingCode: '56', rewrites: [[/^2(\d{7})$/, '22$1']] },
  // Colombia, 2021: numbers of the fixed network begin with 60.
  { callingCode: '57', rewrites: [[/^([124-8]\d{7})$/, '60$1']] },
  // The Philippines, 2019: the digit that numbers of Manila got depends on the network.
  { callingCode: '63', rewrites: [], outdated: [/^2\d{7}$/, 9] },
  // Vietnam, 2018: mobile numbers of eleven digits, with their 0, got ten.
  {
    callingCode: '84',
    rewrites: [
      [/^120(\d{7})$/, '70$1'],
      [/^121(\d{7})$/, '79$1'],
      [/^122(\d{7})$/, '77$1'],
      [/^126(\d{7})$/, '76$1'],
      [/^128(\d{7})$/, '78$1'],
      [/^123(\d{7})$/, '83$1'],
      [/^124(\d{7})$/, '84$1'],
      [/^125(\d{7})$/, '85$1'],
      [/^127(\d{7})$/, '81$1'],
      [/^129(\d{7})$/, '82$1'],
      [/^16([2-9]\d{7})$/, '3$1'],
      [/^186(\d{7})$/, '56$1'],
      [/^188(\d{7})$/, '58$1'],
      [/^199(\d{7})$/, '59$1'],
    ],
  },
  // Guinea, 2013: the digit that mobile numbers got depends on the network.
  { callingCode: '224', rewrites: [], outdated: [/^6\d{7}$/, 9] },
  // Ivory Coast, 2021: two digits of the network, which the second digit of a mobile number tells.
  {
    callingCode: '225',
    rewrites: [
      [/^([04-9][0-3]\d{6})$/, '01$1'],
      [/^([04-9][4-6]\d{6})$/, '05$1'],
      [/^([04-9][7-9]\d{6})$/, '07$1'],
    ],
    outdated: [/^[23]\d{7}$/, 10],
  },
  // Benin, 2024.
  { callingCode: '229', rewrites: [[/^(\d{8})$/, '01$1']] },
  // Mauritius, 2013: a 5 before mobile numbers.
  { callingCode: '230', rewrites: [[/^([24789]\d{6})$/, '5$1']] },
  // Cameroon, 2014: a 6 before mobile numbers, a 2 before others.
  {
    callingCode: '237',
    rewrites: [
      [/^([5-9]\d{7})$/, '6$1'],
      [/^([23]\d{7})$/, '2$1'],
    ],
  },
  // Gabon, 2019: a digit of the network.
  {
    callingCode: '241',
    rewrites: [
      [/^0?1(\d{6})$/, '11$1'],
      [/^0?2(\d{6})$/, '62$1'],
      [/^0?4(\d{6})$/, '74$1'],
      [/^0?5(\d{6})$/, '65$1'],
      [/^0?6(\d{6})$/, '66$1'],
      [/^0?7(\d{6})$/, '77$1'],
    ],
  },
  // Ecuador, 2012: a 9 before mobile numbers.
  { callingCode: '593', rewrites: [[/^([89]\d{7})$/, '9$1']] },
];

/** Argentina: 9 before the area code of a mobile number from abroad, 15 behind it at home. Never both. */
const ARGENTINE_MOBILE = /^\+549(\d+)$/;

/**
 * Puts a number that is written as its country did formerly into the form of today. Another one stays as it is.
 * @param phone E.164, also one that is not possible
 */
export function modernizeNumber(phone: string): string {
  const parsed = parsePhoneNumberFromString(phone);
  if (!parsed) return phone;
  const withoutNine = ARGENTINE_MOBILE.exec(phone)?.[1];
  if (withoutNine !== undefined && !parsed.isPossible()) {
    const mobile = parsePhoneNumberFromString(`+54${withoutNine}`);
    return mobile?.isValid() ? mobile.number : phone;
  }
  const plan = findPlan(phone);
  if (!plan) return phone;
  const { callingCode, rewrites } = plan;
  const national = phone.slice(callingCode.length + 1);
  // Gabon's former numbers are still among those that the library knows.
  if (parsed.isValid() && callingCode !== '241') return phone;
  for (const [former, current] of rewrites) {
    if (!former.test(national)) continue;
    const rewritten = parsePhoneNumberFromString(
      `+${callingCode}${national.replace(former, current)}`,
    );
    // What is possible may be right as it is, and what is not possible can only become better.
    const isBetter = parsed.isPossible() ? rewritten?.isValid() : rewritten?.isPossible();
    if (rewritten && isBetter) return rewritten.number;
  }
  return phone;
}

/**
 * Returns how many digits the numbers of its country have now, if this one has fewer and nobody can tell the others.
 * @param phone E.164
 */
export function findDigitsOfToday(phone: string): number | undefined {
  const plan = findPlan(phone);
  const [former, digits] = plan?.outdated ?? [];
  if (!plan || !former?.test(phone.slice(plan.callingCode.length + 1))) return undefined;
  return parsePhoneNumberFromString(phone)?.isValid() ? undefined : digits;
}

/**
 * Returns what two spellings of one number have in common. In Argentina people leave out the 9 of mobile numbers, and
 * no other telephone has the number without it. Which of the two networks a number is in, it does not tell.
 * @param phone as it is stored
 */
export function getPhoneKey(phone: string): string {
  return phone.replace(ARGENTINE_MOBILE, '+54$1');
}

/** Returns the spellings that a stored number may have. */
export function listPhoneSpellings(phone: string): string[] {
  const key = getPhoneKey(phone);
  return key.startsWith('+54') ? [key, `+549${key.slice(3)}`] : [key];
}

function findPlan(phone: string): PlanChange | undefined {
  return PLAN_CHANGES.find(({ callingCode }) => phone.startsWith(`+${callingCode}`));
}
