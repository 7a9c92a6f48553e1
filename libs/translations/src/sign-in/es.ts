import type { SignInTexts } from './en.js';

export const signIn: SignInTexts = {
  email: 'Correo electrónico',
  password: 'Contraseña',
  newPassword: 'Contraseña nueva',
  yourPassword: 'Su contraseña',
  passwordHint: (length) =>
    `Al menos ${length} caracteres. Consejo: unas cuantas palabras al azar.`,
  minutes: (text, count) => (count <= 1 ? 'un minuto' : `${text} minutos`),
  tooManyAttempts: (wait) => `Demasiados intentos incorrectos. Inténtelo de nuevo en ${wait}.`,
  support: (contact) => `Pregunte a quien gestiona este servicio: ${contact}`,
  supportUnknown: 'Pregunte a quien gestiona este servicio.',
  back: 'Volver',
  moreRights: {
    title: '¿Dar más derechos?',
    text: (role) => `El nuevo rol es ${role}, también para los tokens de API de esta persona.`,
  },
  signIn: {
    title: 'Iniciar sesión',
    submit: 'Iniciar sesión',
    forgot: '¿Ha olvidado la contraseña?',
    or: 'o',
    company: 'Entrar con su empresa',
    wrong: 'La dirección de correo o la contraseña no es correcta.',
    expired:
      'Esta contraseña era para su primer acceso y ya es demasiado antigua. Elija una propia con «¿Ha olvidado la contraseña?» o pregunte a la persona que gestiona este servicio.',
    tooMany: (wait) =>
      `Demasiados intentos incorrectos. Inténtelo de nuevo en ${wait} o elija una contraseña nueva.`,
    signedOut: 'Ha cerrado la sesión.',
    passwordSet: 'Su contraseña nueva está guardada. Inicie sesión con ella.',
    late: 'Ha tardado demasiado. Inicie sesión de nuevo.',
  },
  code: {
    title: 'Introduzca su código',
    label: 'Código',
    hint: 'Los seis dígitos de su aplicación de autenticación o uno de sus códigos de recuperación.',
    submit: 'Continuar',
    startAgain: 'Empezar de nuevo',
    wrong: 'Este código no es correcto o ya se ha usado.',
    locked:
      'Demasiados códigos incorrectos. Introduzca uno de sus códigos de recuperación o elija una contraseña nueva.',
    tooMany: (wait) =>
      `Demasiados códigos incorrectos. Inténtelo de nuevo en ${wait} o introduzca uno de sus códigos de recuperación.`,
  },
  forgot: {
    title: 'Contraseña olvidada',
    noMail:
      'Este servicio no envía correos, así que no puede enviarle un enlace para una contraseña nueva.',
    sent: 'Si hay un usuario con esta dirección, un enlace está en camino.',
    sentHint:
      'El enlace vale una hora. ¿No llega nada en unos minutos? Mire en la carpeta de spam o pruebe con otra dirección.',
    backToSignIn: 'Volver al inicio de sesión',
    emailHint: 'Le enviaremos un enlace para elegir una contraseña nueva.',
    submit: 'Enviar enlace',
  },
  reset: {
    title: 'Contraseña nueva',
    gone: 'Este enlace ya no funciona',
    goneWhy: 'Cada enlace funciona una vez, durante una hora.',
    again: 'Pedir otro enlace',
    endsTokens:
      'Su dirección no estaba confirmada hasta ahora, así que otra persona puede haber creado esta cuenta. Sus tokens de API dejan de funcionar junto con la contraseña anterior. Cree tokens nuevos para sus cajas y tiendas en línea.',
    submit: 'Guardar la contraseña',
  },
  account: {
    title: 'Su cuenta',
    you: 'Usted',
    name: 'Nombre',
    emailHint: 'Enviamos un enlace a la dirección nueva. El cambio vale en cuanto lo abra.',
    onlyForEmail: 'solo para cambiar la dirección de correo',
    save: 'Guardar',
    passwordTitle: 'Contraseña',
    currentPassword: 'Contraseña actual',
    changePassword: 'Cambiar la contraseña',
    secondFactor: 'Acceso en dos pasos',
    on: 'Activado',
    off: 'Desactivado',
    secondFactorOn: (count) =>
      `Cada vez que inicia sesión necesita un código de su aplicación de autenticación. Códigos de recuperación restantes: ${count}.`,
    secondFactorOff:
      'Con un código de una aplicación de su teléfono, una contraseña robada no basta para entrar.',
    change: 'Cambiar',
    setUp: 'Configurar',
    sessions: 'Dónde tiene la sesión iniciada',
    thisBrowser: 'Este navegador',
    signedInOn: (time) => `Sesión iniciada el ${time}`,
    lastSeen: (time) => `último uso el ${time}`,
    unknownBrowser: 'Navegador desconocido',
    browserOn: (browser, system) => `${browser} en ${system}`,
    noOtherSessions: 'No tiene la sesión iniciada en ningún otro lugar.',
    endSession: 'Cerrar sesión',
    endSessionOf: (browser) => `en ${browser}`,
    endSessions: 'Cerrar sesión en los demás lugares',
    askEndSession: '¿Cerrar la sesión de este navegador?',
    askEndSessionText: 'En él habrá que iniciar sesión de nuevo.',
    askEndSessions: '¿Cerrar sesión en los demás lugares?',
    askEndSessionsText: 'En todos los navegadores menos este habrá que iniciar sesión de nuevo.',
    done: {
      saved: 'Guardado.',
      address_link:
        'Guardado. Para usar la dirección nueva, abra el enlace que le hemos enviado allí.',
      address: 'Su dirección de correo se ha cambiado.',
      afresh:
        'Ha iniciado sesión. Su dirección no estaba confirmada hasta ahora, así que otra persona puede haber creado esta cuenta. Por su seguridad, su contraseña, sus códigos, sus tokens de API y todas las demás sesiones han terminado. Cree tokens nuevos para sus cajas y tiendas en línea.',
      password:
        'Su contraseña nueva está guardada. Se ha cerrado la sesión en los demás lugares. Si tenía un PIN para el mostrador, elija uno nuevo.',
      session: 'Se ha cerrado la sesión en ese navegador.',
      sessions: 'Se ha cerrado la sesión en los demás lugares.',
      second_factor_off: 'El acceso en dos pasos está desactivado.',
    },
    noMail: 'La dirección no se puede cambiar aquí, porque este servicio no envía correos.',
  },
  firstPassword: {
    title: 'Elija su propia contraseña',
    why: 'La contraseña que ha recibido solo sirve para su primer acceso.',
    first: 'La contraseña que ha recibido',
    submit: 'Guardar la contraseña',
  },
  secondFactorRule: {
    required: 'Obligatorio',
    optional: 'Voluntario',
    isRequired: 'Todas las personas de este negocio necesitan un código para entrar.',
    isOptional: 'Cada persona de este negocio decide por sí misma.',
    turnOn: 'Hacerlo obligatorio',
    turnOff: 'Hacerlo voluntario',
    askOn: '¿Hacer obligatorio el acceso en dos pasos?',
    askOnText:
      'Todas las personas de este negocio necesitarán un código para entrar. Quien no lo tenga lo configurará antes de continuar, también usted.',
    askOff: '¿Hacer voluntario el acceso en dos pasos?',
    askOffText:
      'Todas las personas de este negocio podrán desactivarlo y entrar solo con su contraseña.',
  },
  secondFactor: {
    required: 'Aquí el acceso en dos pasos es obligatorio. Configúrelo para continuar.',
    title: 'Acceso en dos pasos',
    intro:
      'Cada vez que inicie sesión necesitará un código de una aplicación de autenticación de su teléfono. Puede que su teléfono ya tenga una; si no, instálela desde su tienda de aplicaciones.',
    setUp: 'Configurar',
    step1: '1. Añada Inkpad a su aplicación de autenticación',
    onThisPhone: 'Configurar en este teléfono',
    scan: 'Escanee esto con la aplicación:',
    qrCode: 'Código QR para su aplicación de autenticación',
    cannotScan: '¿No funciona ninguno?',
    enterKey: 'Introduzca esta clave en la aplicación:',
    step2: '2. Introduzca el código que muestra',
    code: 'Código',
    turnOn: 'Activar',
    notNow: 'Ahora no',
    isOn: 'El acceso en dos pasos está activado: necesita un código cada vez que inicia sesión.',
    recovery: 'Códigos de recuperación',
    recoveryText: (count) =>
      `Le permiten entrar si pierde el teléfono. Le quedan ${count}. Los códigos nuevos sustituyen a los anteriores.`,
    newCodes: 'Crear códigos nuevos',
    turnOff: 'Desactivar',
    turnOffText:
      'Después bastará la contraseña para entrar. Para pasar a otro teléfono, desactívelo y configúrelo de nuevo.',
    backToAccount: 'Volver a su cuenta',
    isNew:
      'El acceso en dos pasos está activado. A partir de ahora necesita un código para entrar.',
    isReplaced: 'Sus códigos de recuperación anteriores ya no funcionan.',
    keepText:
      'Imprima o anote estos códigos y guárdelos lejos del teléfono. Si lo pierde, cada código le permite entrar una vez.',
    shownOnce: 'No se mostrarán de nuevo.',
    saved: 'Los he guardado',
  },
  address: {
    question: '¿Es esta su dirección nueva?',
    text: 'Iniciará sesión con esta dirección, y allí se enviarán los enlaces para contraseñas nuevas.',
    yes: 'Usar esta dirección',
    no: 'Conservar la anterior',
    taken: 'Esta dirección ya está en uso',
    takenWhy: 'Otra persona inicia sesión con ella.',
    gone: 'Este enlace ya no funciona',
    goneWhy: (email) =>
      `Se usó, ha caducado, lo sustituyó un enlace más reciente o pertenece a otra persona. Ha iniciado sesión como ${email}.`,
  },
  company: {
    notSignedIn: 'No ha iniciado sesión',
    late: 'El inicio de sesión tardó demasiado o se empezó en otro navegador.',
    refused: 'El acceso de su empresa no confirmó quién es usted.',
    noEmail: 'Su empresa no ha confirmado su dirección de correo.',
    tryAgain:
      'Inténtelo de nuevo. Si vuelve a ocurrir, pregunte al servicio de informática de su empresa.',
    unreachable: 'No se puede acceder al inicio de sesión de su empresa',
    unreachableWhy: 'Inténtelo de nuevo en un momento o entre con su contraseña.',
    noAccount: 'Todavía no tiene una cuenta aquí',
    noAccountWhy: (email) =>
      `Su empresa le ha identificado como ${email}. Pida a un propietario de un negocio que invite a esta dirección.`,
    taken: 'Esta cuenta pertenece a otra persona',
    takenWhy: (email) =>
      `Otra persona de su empresa ya ha entrado como ${email}. Si la dirección es ahora suya, pida a quien gestiona este servicio que desvincule la cuenta de esa persona.`,
  },
  mails: {
    hello: (name) => `Hola, ${name}:`,
    resetSubject: 'Una contraseña nueva para Inkpad',
    reset: (
      link,
    ) => `Se ha pedido una contraseña nueva para su cuenta. Para elegirla, abra este enlace antes de una hora:

${link}

Si no ha sido usted, ignore este correo: su contraseña sigue siendo la misma.`,
    addressSubject: 'Su dirección de correo para Inkpad',
    address: (
      link,
      hours,
    ) => `Se ha pedido usar esta dirección para su cuenta. Abra este enlace antes de ${hours} horas e inicie sesión
como hasta ahora:

${link}

Si no ha sido usted, ignore este correo: no cambia nada.`,
    takenHello: 'Hola:',
    taken: (
      url,
    ) => `Se ha pedido usar esta dirección para otra cuenta. Ya tiene una cuenta, así que no ha cambiado nada.
Puede entrar con ella, o elegir una contraseña nueva, aquí: ${url}

Si no ha sido usted, ignore este correo.`,
    changedSubject: 'Su dirección de correo para Inkpad ha cambiado',
    changed: (email) => `Ahora inicia sesión con ${email}. Esta dirección ya no se usa.

Si no ha sido usted, pida ayuda de inmediato a quien gestiona este servicio.`,
    wrongCodesSubject: 'Códigos incorrectos para su cuenta de Inkpad',
    wrongCodes: (count) =>
      `Alguien ha introducido su contraseña y después ${count} códigos incorrectos.`,
    wrongCodesLocked: (
      link,
    ) => `Su cuenta ya no acepta códigos de su aplicación. Para entrar, introduzca uno de sus códigos de recuperación o elija una contraseña nueva:

${link}`,
    wrongCodesOpen: (link) => `Si no ha sido usted, alguien conoce su contraseña. Elija una nueva:

${link}`,
  },
};
